import type { TestTagDefinition } from 'vitest/config';
import { type NeedName, needs } from './needs.ts';

declare module 'vitest' {
  interface TestTags {
    tags: NeedName;
  }
}

/** The tags of Vitest: a test is skipped when a tag of it names something that is not there. */
export const needTags: TestTagDefinition[] = [...needs].map(([name, { what, isThere, remedy }]) => ({
  name,
  description: isThere ? `needs ${what}` : `needs ${what}, which is not there (${remedy})`,
  ...(!isThere && { skip: true }),
}));
