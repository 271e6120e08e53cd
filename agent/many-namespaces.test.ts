import { expect, test } from 'vitest';
import type { Application, Message } from '../lib/argocd/index.ts';
import { ApiError } from '../lib/kube/index.ts';
import type { Store } from '../lib/sync/index.ts';
import { ManyNamespaces } from './many-namespaces.ts';

const signal = new AbortController().signal;
const ids = { resourceId: 'r', eventId: 'e' };
const application = (namespace: string, name: string): Application => ({
  metadata: { namespace, name, uid: `${namespace}-${name}` },
  spec: {},
});

function start(principalNamespace = 'hub-argocd') {
  const calls: unknown[] = [];
  const state = { namespaceMissing: false };
  const real: Store<Application> = {
    subscribe: (listener) => {
      listener({ old: undefined, now: application('argocd', 'a') });
      listener({ old: undefined, now: application('secret', 'b') });
      return () => undefined;
    },
    read: async (ref) => application(ref.namespace, ref.name),
    create: async (object) => {
      calls.push(['create', object.metadata.namespace, object.metadata.name]);
      if (!state.namespaceMissing) return object;
      state.namespaceMissing = false;
      throw new ApiError({ status: 404, message: 'no such namespace' });
    },
    patch: async (ref) => application(ref.namespace, ref.name),
    delete: async (ref) => void calls.push(['delete', ref]),
  };
  const many = new ManyNamespaces({
    namespace: 'argocd',
    isAllowed: (namespace) => namespace !== 'secret',
    ensureNamespace: async (namespace) => void calls.push(['namespace', namespace]),
  });
  many.principalNamespace = principalNamespace;
  const sent: Message[] = [];
  const connection = many.connection({
    send: (message) => {
      sent.push(message);
      return true;
    },
    acknowledge: (message) => void sent.push(message),
  });
  return { many, store: many.store(real), connection, calls, sent, state };
}

test('the engine sees all Applications in one namespace, without those of namespaces that are not allowed', async () => {
  const { store, calls } = start();
  const seen: unknown[] = [];
  store.subscribe(({ now }) => seen.push(now?.metadata));
  expect(seen).toEqual([{ namespace: 'argocd', name: 'argocd/a', uid: 'argocd-a' }]);
  expect((await store.read({ namespace: 'argocd', name: 'team/x' }, signal))?.metadata.uid).toBe('team-x');
  expect((await store.patch({ namespace: 'argocd', name: 'team/x' }, {}, signal)).metadata.name).toBe('team/x');
  await store.delete({ namespace: 'argocd', name: 'team/x' }, { uid: '1', propagation: 'Background' }, signal);
  expect(calls).toEqual([['delete', { namespace: 'team', name: 'x' }]]);
});

test('a missing namespace is made when it is needed, one that is not allowed is refused', async () => {
  const { store, calls, state } = start();
  state.namespaceMissing = true;
  await store.create(application('argocd', 'team/x'), signal);
  expect(calls).toEqual([
    ['create', 'team', 'x'],
    ['namespace', 'team'],
    ['create', 'team', 'x'],
  ]);
  await expect(store.create(application('argocd', 'secret/x'), signal)).rejects.toMatchObject({
    status: 403,
    message: "namespace secret is not among the agent's --allowed-namespaces",
  });
});

test.each([
  ['hub-argocd', 'hub-argocd', 'argocd/x', 'argocd', 'true'],
  ['hub-argocd', 'team', 'team/x', 'team', undefined],
  ['argocd', 'argocd', 'argocd/x', 'argocd', undefined],
])('principal in %s, Application in %s', (principalNamespace, hubNamespace, inside, reported, mark) => {
  const { many, connection, sent } = start(principalNamespace);
  const message: Message = { target: 'application', type: 'create', ...ids, object: application(hubNamespace, 'x') };
  const incoming = many.incoming(message);
  expect(incoming).toMatchObject({ object: { metadata: { name: inside, namespace: 'argocd' } } });

  connection.send({ ...(incoming as typeof message), type: 'status-update' });
  expect(sent[0]).toMatchObject({ object: { metadata: { name: 'x', namespace: reported } } });
  const metadata = (sent[0] as typeof message).object.metadata;
  expect(metadata.annotations?.['argocd.argoproj.io/namespace-remapped']).toBe(mark);

  const payload = { kind: 'Application', name: inside, namespace: 'argocd', uid: 'u', checksum: null } as const;
  connection.send({ target: 'resourceResync', type: 'request-update', ...ids, payload });
  expect(sent[1]).toMatchObject({ payload: { name: 'x', namespace: hubNamespace } });

  const error = { resourceName: inside, resourceNamespace: 'argocd', message: 'no' };
  connection.send({ target: 'application', type: 'error', ...ids, error });
  expect(sent[2]).toMatchObject({ error: { resourceName: 'x', resourceNamespace: reported } });
});
