export { AttackCall, Attacker, bytesOf, type CallEnd, frame, type Target } from './attacker.ts';
export { mutated } from './mutations.ts';
export { evil, neighbour, other, rogue, Stage } from './stage.ts';
export { Witness } from './witness.ts';
