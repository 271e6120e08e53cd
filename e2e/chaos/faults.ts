import type { Random } from '../random/index.ts';

/** What can be done to what, and how likely it is. */
export const faultKinds = {
  'kill principal': { of: 'principal', weight: 6, forMs: [0, 3_000] },
  'freeze principal': { of: 'principal', weight: 2, forMs: [1_000, 9_000] },
  'stop principal': { of: 'principal', weight: 2, forMs: [500, 3_000] },
  'cut principal off from the API server': { of: 'principal', weight: 3, forMs: [1_000, 12_000] },
  'lose principal’s way to the API server': { of: 'principal', weight: 3, forMs: [1_000, 12_000] },
  'cut the links to principal': { of: 'principal', weight: 2, forMs: [1_000, 8_000] },
  'kill agent': { of: 'agent', weight: 5, forMs: [0, 3_000] },
  'freeze agent': { of: 'agent', weight: 1, forMs: [1_000, 6_000] },
  'cut agent off': { of: 'agent', weight: 3, forMs: [0, 4_000] },
  'lose agent’s way': { of: 'agent', weight: 2, forMs: [1_000, 8_000] },
  'slow agent’s way': { of: 'agent', weight: 2, forMs: [2_000, 8_000] },
  'cut agent off from its API server': { of: 'agent', weight: 2, forMs: [500, 6_000] },
  'kill API server': { of: 'cluster', weight: 2, forMs: [0, 2_000] },
  'kill etcd': { of: 'cluster', weight: 1, forMs: [0, 2_000] },
  'forget history': { of: 'cluster', weight: 1, forMs: [0, 0] },
  'refuse statuses': { of: 'cluster', weight: 2, forMs: [5_000, 20_000] },
  'refuse operations': { of: 'cluster', weight: 2, forMs: [5_000, 20_000] },
  'refuse copies': { of: 'place of copies', weight: 2, forMs: [5_000, 20_000] },
  'cut the hubs off from each other': { of: 'pair', weight: 2, forMs: [1_000, 10_000] },
  'cut hub off from the Lease': { of: 'hub', weight: 2, forMs: [2_000, 16_000] },
  'new certificate for agent': { of: 'agent', weight: 1, forMs: [0, 0] },
  'new certificates for principals': { of: 'fleet', weight: 1, forMs: [0, 0] },
  'new authority': { of: 'fleet', weight: 1, forMs: [2_000, 4_000] },
} as const satisfies Record<string, { of: FaultTarget; weight: number; forMs: readonly [number, number] }>;

/** What a fault happens to. */
export type FaultTarget = 'principal' | 'agent' | 'cluster' | 'place of copies' | 'hub' | 'pair' | 'fleet';

/** The name of one of {@link faultKinds}. */
export type FaultKind = keyof typeof faultKinds;

/** One fault of a run. */
export interface Fault {
  readonly kind: FaultKind;
  readonly target: string;
  /** Milliseconds since the start of the run. */
  readonly atMs: number;
  /** For how long. Starting a killed process and its coming back take more. */
  readonly forMs: number;
}

/** How {@link drawFaults} draws. */
export interface FaultPlan {
  readonly durationMs: number;
  /** Mean time from one fault to the next. */
  readonly everyMs: number;
  /** The names of what there is; faults of an empty list are not drawn. */
  readonly targets: Readonly<Record<FaultTarget, readonly string[]>>;
}

/** What suffers a fault is left alone for so long afterwards. */
const restMs = 1_500;

/**
 * Draws the faults of a run: the same ones from the same random numbers. What suffers one is spared until it is over; different
 * things suffer at the same time.
 */
export function drawFaults(random: Random, { durationMs, everyMs, targets }: FaultPlan): Fault[] {
  const all = (Object.keys(faultKinds) as FaultKind[]).filter((kind) => targets[faultKinds[kind].of].length > 0);
  const lots = all.flatMap((kind) => Array.from({ length: faultKinds[kind].weight }, () => kind));
  const busyUntil = new Map<string, number>();
  const faults: Fault[] = [];
  if (lots.length === 0) {
    return faults;
  }
  for (
    let atMs = everyMs;
    atMs < durationMs;
    atMs += random.integer(Math.round(everyMs / 4), Math.round(1.75 * everyMs))
  ) {
    const kind = random.pick(lots);
    const { of, forMs } = faultKinds[kind];
    const target = random.pick(targets[of]);
    const fault = { kind, target, atMs, forMs: random.integer(forMs[0], forMs[1]) };
    if ((busyUntil.get(target) ?? 0) <= atMs) {
      busyUntil.set(target, atMs + fault.forMs + restMs);
      faults.push(fault);
    }
  }
  return faults;
}
