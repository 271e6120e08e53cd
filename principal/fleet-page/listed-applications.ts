import type { Application } from '../../lib/argocd/index.ts';
import { healthNames, syncNames } from './model/cluster-facts.ts';
import type { ListedApplication, ListedApplications } from './view/cluster-page.ts';

const mostListed = 200;
const healths: readonly string[] = healthNames;
const syncs: readonly string[] = syncNames;

/** The Applications that may be seen, those in trouble first. */
export function listApplications(
  all: readonly Application[],
  maySee: (application: { project: string; namespace: string; name: string }) => boolean,
): ListedApplications {
  const seen = all.map(listed).filter(maySee);
  const rank = ({ health, sync }: ListedApplication) => {
    const [worst, behind] = [healths.indexOf(health), syncs.indexOf(sync)];
    return worst * syncs.length + behind;
  };
  const sorted = seen.toSorted(
    (a, b) => rank(a) - rank(b) || (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1),
  );
  return {
    shown: sorted.slice(0, mostListed),
    more: Math.max(0, sorted.length - mostListed),
    withheld: all.length - seen.length,
  };
}

function listed({ metadata, spec, status = {} }: Application): ListedApplication {
  const { health, sync, operationState, conditions } = status;
  const words = [
    textOf(health?.message),
    operationState?.phase === 'Succeeded' ? '' : textOf(operationState?.message),
    ...(Array.isArray(conditions) ? conditions.map((condition) => textOf(condition?.message)) : []),
  ];
  const known = (name: unknown, names: readonly string[]) => (names.includes(String(name)) ? String(name) : 'Unknown');
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    // As Argo CD has it.
    project: textOf(spec?.project) || 'default',
    health: known(health?.status, healthNames),
    sync: known(sync?.status, syncNames),
    message: words.find((text) => text !== '') ?? '',
  };
}

/** The status of an autonomous agent's Application is what the agent says. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 2_000) : '';
}
