import { expect, test } from 'vitest';
import { type AppProjectSpec, type Destination, impersonatedUser } from './index.ts';

const here = 'https://kubernetes.default.svc';
const account = (fields: { server?: string; namespace?: string; defaultServiceAccount?: unknown } = {}) => ({
  server: '*',
  namespace: '*',
  defaultServiceAccount: 'deployer',
  ...fields,
});
const everywhere = [{ server: '*', namespace: '*' }];

function userFor(
  accounts: object[],
  { namespace = 'argocd', ...destination }: Destination & { to?: string } = {},
  spec: Partial<AppProjectSpec> = {},
): string | undefined {
  const { to = 'shop', ...cluster } = destination;
  const project = {
    metadata: { name: 'team' },
    spec: { destinations: everywhere, destinationServiceAccounts: accounts as never, ...spec },
  };
  const target = Object.keys(cluster).length === 0 ? { name: 'in-cluster' } : cluster;
  const application = {
    metadata: { name: 'web', namespace },
    spec: { project: 'team', destination: { ...target, namespace: to } },
  };
  return impersonatedUser(application, project, 'argocd');
}

test.each<[string, object[], string | undefined]>([
  ['by its name', [account()], 'system:serviceaccount:shop:deployer'],
  ['with its namespace', [account({ defaultServiceAccount: 'ops:deployer' })], 'system:serviceaccount:ops:deployer'],
  ['by a glob of the namespace', [account({ namespace: 's*' })], 'system:serviceaccount:shop:deployer'],
  [
    'as the first that matches',
    [account({ namespace: 'other', defaultServiceAccount: 'no' }), account(), account({ defaultServiceAccount: 'no' })],
    'system:serviceaccount:shop:deployer',
  ],
  ['of another cluster', [account({ server: 'https://other' })], undefined],
  ['of another namespace', [account({ namespace: 'other' })], undefined],
  ['of no namespace', [account({ namespace: '' })], undefined],
  ['after an invalid glob', [account({ server: '[' }), account()], undefined],
  ['after an invalid one', [account({ defaultServiceAccount: '*' }), account()], undefined],
  ['that is empty', [account({ defaultServiceAccount: ' ' })], undefined],
  ['that is a tab', [account({ defaultServiceAccount: '\t' })], 'system:serviceaccount:shop:\t'],
  ['that is no text', [account({ defaultServiceAccount: 7 })], undefined],
  ['that is missing', [account({ defaultServiceAccount: undefined })], undefined],
  ['in none', [], undefined],
])('an account that a project names %s', (_, accounts, user) => expect(userFor(accounts)).toBe(user));

test('an Application without a namespace has the account in its own', () => {
  expect(userFor([account()], { to: '' })).toBe('system:serviceaccount:argocd:deployer');
});

test('an Application counts only if it deploys to its own cluster', () => {
  expect(userFor([account()], { server: here })).toBe('system:serviceaccount:shop:deployer');
  expect(userFor([account()], { server: 'https://other' })).toBeUndefined();
  expect(userFor([account()], { name: 'other' })).toBeUndefined();
  expect(userFor([account()], { name: 'other', server: here })).toBeUndefined();
});

test('an Application counts only if its project permits it', () => {
  expect(userFor([account()], {}, { destinations: [{ server: '*', namespace: 'other' }] })).toBeUndefined();
  expect(userFor([account()], { namespace: 'tenant' })).toBeUndefined();
  expect(userFor([account()], { namespace: 'tenant' }, { sourceNamespaces: ['ten*'] })).toBe(
    'system:serviceaccount:shop:deployer',
  );
});
