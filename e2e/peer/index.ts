export { faulty, type PeerFaults } from './faults.ts';
export { type Holding, Holdings, localObject } from './holdings.ts';
export type { EventReader, EventWriter } from './manners.ts';
export { ScriptedPeer } from './peer.ts';
export { noLog, type PlayedAgent, type PlayedPrincipal, playAgent, playPrincipal } from './play.ts';
export { deletionOfAbsent, followPrincipal } from './resync.ts';
export { livingFor } from './token-life.ts';
export { speakOn, type WirePeer, wirePeer } from './wire-peer.ts';
