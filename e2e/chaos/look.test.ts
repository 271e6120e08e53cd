import { expect, test } from 'vitest';
import type { ArgoObject } from '../pair/index.ts';
import { keptOutLabel } from './ledger.ts';
import { sharedBy } from './look.ts';

const seen = (name: string, labels: Readonly<Record<string, string>> = {}): ArgoObject => ({
  metadata: { name, namespace: 'cluster1', labels },
  spec: {},
});
const keptOut = { [keptOutLabel]: 'true' };

test('what the label keeps out on one hub is not compared with what the other one has of it', () => {
  const active = [seen('web'), seen('old', keptOut), seen('blog')];
  const standby = [seen('web'), seen('old'), seen('blog', keptOut), seen('alone')];
  expect(sharedBy(active, standby)).toEqual({ active: [seen('web')], standby: [seen('web'), seen('alone')] });
});
