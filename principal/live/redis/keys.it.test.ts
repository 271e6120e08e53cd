import { expect, test } from 'vitest';
import { compareWithArgoCD, comparisonMs } from '../../../e2e/oracle/index.ts';
import { applicationOf, emptyValue, keyFault } from './keys.ts';

test(
  'the keys and channels of an Application are those of Argo CD, and it reads what is unknown as nothing',
  async () => {
    const differs = await compareWithArgoCD('cached', (dice) => {
      const [namespace, name] = [dice.pick(['', 'a', 'team-a', '7']), dice.pick(['web', 'a.b', 'x-1', '0'])];
      const compression = dice.pick(['gzip', 'none']);
      const suffix = `1.8.3${compression === 'gzip' ? '.gz' : ''}`;
      const application = namespace === '' ? name : `${namespace}_${name}`;
      const unknown = ['resources-tree', 'managed-resources'].map((kind) => `app|${kind}|${application}|${suffix}`);
      const isOurs = (key: string) => {
        const found = applicationOf(key);
        return found?.namespace === namespace && found.name === name && keyFault(key) === undefined;
      };
      return {
        of: {
          compression,
          application,
          nodes: dice.integer(0, 12),
          shardSize: dice.integer(0, 3),
          empty: Object.fromEntries(unknown.map((key) => [key, emptyValue(key).toString('base64')])),
        },
        ours: { namespace, name },
        agrees: (theirs) => {
          const { keys = [], channels = [], read } = theirs as { keys?: string[]; channels?: string[]; read?: number };
          return (
            keys.length >= 2 &&
            channels.length === 1 &&
            read === 0 &&
            [...keys, ...channels].every((key) => isOurs(key))
          );
        },
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);
