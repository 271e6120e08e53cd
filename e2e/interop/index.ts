/** What a principal and an agent do together, whichever program each of them is. */
export { type PairWay, pairWays, testDelivery, testLiveAccess } from './pair-behaviour.ts';
