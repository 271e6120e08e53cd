import { describe } from 'vitest';
import { pairWays, testDelivery, testLiveAccess } from './pair-behaviour.ts';

// Programs of this project with the real argocd-agent at the other end.

const original = process.env.ARGOCD_AGENT_BIN || undefined;
const sides = [
  { side: 'our agents, principal of argocd-agent', originals: { principal: original } },
  { side: 'agents of argocd-agent, our principal', originals: { agent: original } },
].flatMap((each) => pairWays.map((way) => ({ ...each, ...way })));

describe.each(sides)('$side, $way', { tags: 'argocd-agent' }, ({ originals, isMapped }) => {
  testDelivery(isMapped, async () => originals);
});

// Not the other way round: argocd-agent's principal has its proxies on fixed ports of all addresses.
describe('our proxies, an agent of argocd-agent', { tags: 'argocd-agent' }, () => {
  testLiveAccess(async () => ({ agent: original }));
});
