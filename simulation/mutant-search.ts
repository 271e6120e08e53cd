import { join } from 'node:path';

/** Mutants of the engine and of the rules for Argo CD's objects. */
export const search = {
  root: join(import.meta.dirname, '../lib'),
  teller: join(import.meta.dirname, 'tell.ts'),
};
