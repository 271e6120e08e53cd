export { AttackCall, Attacker, type AttackTarget, type CallEnd, eventBytes, frame } from './attacker.ts';
export { mutated, spoilt } from './mutations.ts';
export { evil, neighbour, other, rogue, Stage } from './stage.ts';
export { Witness } from './witness.ts';
