import { FatalError, printableLines } from '../../lib/ops/index.ts';
import { type Ctl, ctlCommand } from '../ctl-command.ts';
import { checkAgentSide } from '../validate/agent-checks.ts';
import { Checklist, type CheckResult } from '../validate/checks.ts';
import { checkPrincipalSide } from '../validate/principal-checks.ts';

/** The commands that check an installation. */
export const validateCommands = [
  ctlCommand({
    name: 'validate principal',
    summary: 'Check the installation of the principal',
    flags: {},
    run: async (_, ctl) => {
      if (ctl.targets.principal.namespace.trim() === '') {
        throw new FatalError('--principal-namespace is required');
      }
      const list = new Checklist();
      await checkPrincipalSide(ctl.principal(), list, ctl.signal);
      print(ctl, list.results);
    },
  }),
  ctlCommand({
    name: 'validate agent',
    summary: 'Check the installation of an agent, and of its principal',
    flags: {},
    run: async (_, ctl) => {
      const { principal, agent } = ctl.targets;
      if ([principal.context, principal.namespace, agent.context, agent.namespace].includes('')) {
        throw new FatalError(
          'An agent and principal must be provided for this command, use -h flag to see ways to provide them',
        );
      }
      const list = new Checklist();
      await checkPrincipalSide(ctl.principal(), list, ctl.signal);
      await checkAgentSide(ctl.agent(), ctl.principal(), list, ctl.signal);
      print(ctl, list.results);
    },
  }),
];

function print(ctl: Ctl, results: readonly CheckResult[]): void {
  const lines = results.map(({ name, problem }) =>
    problem === undefined ? `* ${name}: ✅` : `* ${name}: ❌\nERROR: ${problem}`,
  );
  ctl.print(printableLines(`${['Configuration validation results:', ...lines].join('\n')}\n`));
  if (results.some(({ problem }) => problem !== undefined)) {
    throw new FatalError('one or more checks failed');
  }
}
