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
    certificateEnds: new Date(Date.now() + (20 + ((index * 13) % 60)) * 24 * hour),
  };
  switch (index % every) {
    case 1:
      return { ...common, applications: madeUpCounts(24, { Degraded: 3, Progressing: 2 }, 4) };
    case 2:
      return { ...common, connectedSince: undefined, lastSeen: new Date(Date.now() - 3 * hour) };
    case 7:
      return { ...common, pending: 3 + (index % 5) };
    case 11:
      return { ...common, certificateEnds: new Date(Date.now() + 3 * 24 * hour) };
    case 17:
      return {
        ...common,
        connectedSince: undefined,
        lastSeen: undefined,
        version: '',
        mode: '',
        certificateEnds: undefined,
        applications: madeUpCounts(0),
      };
    default:
      return common;
  }
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
