import { expect, test } from 'vitest';
import { compareWithArgoCD, comparisonMs } from '../../e2e/oracle/index.ts';
import type { Random } from '../../e2e/random/index.ts';
import { canonicalJson } from './canonical-json.ts';

function value(dice: Random, depth: number): unknown {
  const texts = ['a', '<b>&', 'é', '\u2028', '\u007f', '"\\', '\n\t', '\ud83d\ude00', '', '\b\f', '\u0000'];
  switch (dice.integer(0, depth > 0 ? 6 : 4)) {
    case 0:
      return dice.pick(texts);
    case 1:
      return dice.integer(-5, 5) * 10 ** dice.integer(-9, 22);
    case 2:
      return dice.next() * 10 ** dice.integer(-12, 25);
    case 3:
      return dice.chance(0.5);
    case 4:
      return null;
    case 5:
      return Array.from({ length: dice.integer(0, 3) }, () => value(dice, depth - 1));
    default:
      return Object.fromEntries(
        Array.from({ length: dice.integer(0, 3) }, () => [dice.pick(texts), value(dice, depth - 1)]),
      );
  }
}

test(
  'the JSON of which checksums are made is what Go writes',
  async () => {
    const differs = await compareWithArgoCD('json', (dice) => {
      const one = value(dice, 3);
      return { of: { text: JSON.stringify(one) }, ours: canonicalJson(one) };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);
