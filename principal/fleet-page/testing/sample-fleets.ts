import { hostileTexts, type MadeUpCluster, madeUpCounts } from './made-up-fleet.ts';

const places = ['eu-west', 'eu-north', 'us-east', 'us-west', 'ap-south', 'sa-east'];
const stages = ['prod', 'stage', 'edge', 'store'];
const hour = 3_600_000;

/** A fleet of this size in which most is well and every state occurs; the same for the same size. */
export function sampleFleet(size: number): Record<string, MadeUpCluster> {
  const fleet: Record<string, MadeUpCluster> = {};
  for (let index = 0; index < size; index++) {
    const name = `${stages[index % 4]}-${places[index % 6]}-${String(Math.floor(index / 6) + 1).padStart(2, '0')}`;
    fleet[`${name}${fleet[name] === undefined ? '' : `-${index}`}`] = sampleCluster(index, size);
  }
  return fleet;
}

function sampleCluster(index: number, size: number): MadeUpCluster {
  const every = size < 10 ? 3 : 41;
  const common: MadeUpCluster = {
    mode: index % 9 === 4 ? 'autonomous' : 'managed',
    version: index % 5 === 0 ? '0.0.9' : '0.1.0',
    applications: madeUpCounts(6 + ((index * 7) % 30)),
    connectedSince: new Date(Date.now() - ((index * 37) % 200) * hour),
    certificate: certificateFor(20 + ((index * 13) % 60)),
  };
  switch (index % every) {
    case 1:
      return { ...common, applications: madeUpCounts(24, { Degraded: 3, Progressing: 2 }, 4) };
    case 2:
      return { ...common, connectedSince: undefined, lastSeen: new Date(Date.now() - 3 * hour) };
    case 7:
      return { ...common, pending: 3 + (index % 5) };
    case 11:
      return { ...common, certificate: certificateFor(3) };
    case 17:
      return {
        ...common,
        connectedSince: undefined,
        lastSeen: undefined,
        version: '',
        mode: '',
        certificate: undefined,
        applications: madeUpCounts(0),
      };
    default:
      return common;
  }
}

/** A certificate of 90 days that has this many left. */
function certificateFor(days: number): MadeUpCluster['certificate'] {
  const ends = Date.now() + days * 24 * hour;
  return { from: new Date(ends - 90 * 24 * hour), ends: new Date(ends) };
}

/** The same with clusters whose names, versions and messages are {@link hostileTexts}. */
export function hostileFleet(size: number): Record<string, MadeUpCluster> {
  const fleet = sampleFleet(size);
  for (const [index, text] of hostileTexts.entries()) {
    fleet[`hostile-${index}`] = {
      title: text,
      version: text,
      mode: index % 2 === 0 ? 'managed' : text,
      applications: madeUpCounts(9, { Degraded: 1 }),
    };
  }
  return fleet;
}
