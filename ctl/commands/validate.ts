import { FatalError, printableLines } from '../../lib/ops/index.ts';
import { type Ctl, ctlCommand } from '../ctl-command.ts';
import { inFormat, outputFlag } from '../output.ts';
import { checkAgentSide } from '../validate/agent-checks.ts';
import { Checklist, type CheckResult } from '../validate/checks.ts';
import { checkPrincipalSide } from '../validate/principal-checks.ts';

/** The commands that check an installation. */
export const validateCommands = [
  ctlCommand({
    name: 'validate principal',
    summary: 'Check the installation of the principal',
    flags: { output: outputFlag() },
    run: async ({ output }, ctl) => {
      if (ctl.targets.principal.namespace.trim() === '') {
        throw new FatalError('--principal-namespace is required');
      }
      const list = new Checklist();
      await checkPrincipalSide(ctl.principal(), list, ctl.signal);
      print(ctl, list.results, output);
    },
  }),
  ctlCommand({
    name: 'validate agent',
    summary: 'Check the installation of an agent, and of its principal',
    flags: { output: outputFlag() },
    run: async ({ output }, ctl) => {
      const { principal, agent } = ctl.targets;
      if ([principal.context, principal.namespace, agent.context, agent.namespace].includes('')) {
        throw new FatalError(
          'An agent and principal must be provided for this command, use -h flag to see ways to provide them',
        );
      }
      const list = new Checklist();
      await checkPrincipalSide(ctl.principal(), list, ctl.signal);
      await checkAgentSide(ctl.agent(), ctl.principal(), list, ctl.signal);
      print(ctl, list.results, output);
    },
  }),
];

function print(ctl: Ctl, results: readonly CheckResult[], output: string): void {
  const lines = results.map(({ name, problem }) =>
    problem === undefined ? `* ${name}: ✅` : `* ${name}: ❌\nERROR: ${problem}`,
  );
  const text = () => printableLines(`${['Configuration validation results:', ...lines].join('\n')}\n`);
  ctl.print(inFormat({ results: results.map(({ name, problem }) => ({ name, problem })) }, output, text));
  if (results.some(({ problem }) => problem !== undefined)) {
    throw new FatalError('one or more checks failed');
  }
}
