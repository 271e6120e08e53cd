/**
 * A port below 32768 that is this process's alone, see `freePort` of the testbed: the programs' metrics and health ports must
 * be that low, and one that was merely free a moment ago may be somebody else's when the program listens.
 */
export { freePort as freeLowPort } from '../testbed/index.ts';
