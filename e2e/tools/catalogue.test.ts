import { expect, it } from 'vitest';
import { toolNames, usualToolNames } from './catalogue.ts';

it('leaves to demand what most runs do without', () => {
  expect(toolNames.filter((name) => !usualToolNames.includes(name))).toEqual(['ocm']);
});
