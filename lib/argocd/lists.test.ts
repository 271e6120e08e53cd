import { expect, test } from 'vitest';
import { type Application, applicationSchema, appProjectSchema } from './application.ts';

const metadata = { name: 'shop', namespace: 'argocd' };
const many = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index));

test('an Application with as many conditions and finalizers as Argo CD writes is read', () => {
  const conditions = many(1_500, (index) => ({ type: 'RepeatedResourceWarning', message: `${index}` }));
  const finalizers = many(300, (index) => `example.com/${index}`);
  const application = applicationSchema.parse({
    metadata: { ...metadata, finalizers },
    spec: {},
    status: { conditions },
  });
  expect(application.status?.conditions).toEqual(conditions);
  expect(application.metadata.finalizers).toEqual(finalizers);
});

test('so is an AppProject', () => {
  const destinations = many(8_000, (index) => ({ server: `https://${index}`, namespace: '*' }));
  const sourceNamespaces = many(8_000, (index) => `namespace-${index}`);
  const syncWindows = many(8_000, (index) => ({ kind: 'deny', clusters: [`${index}`] }));
  const destinationServiceAccounts = many(8_000, (index) => ({ server: `https://${index}`, namespace: 'x' }));
  const spec = { destinations, sourceNamespaces, syncWindows, destinationServiceAccounts };
  expect(appProjectSchema.parse({ metadata, spec }).spec).toEqual(spec);
});

test('a list is checked up to the first item that is not as expected', () => {
  const conditions: unknown[] = many(100, () => ({ type: 'a', message: 'b' }));
  const read = () =>
    applicationSchema.safeParse({ metadata, spec: {}, status: { conditions } } as unknown as Application);
  conditions.push(...many(100_000, () => 5));
  const { issues = [] } = read().error ?? {};
  expect(issues).toMatchObject([{ path: ['status', 'conditions', 100] }]);
  conditions[3] = { type: 'a' };
  expect(read().error?.issues).toMatchObject([{ path: ['status', 'conditions', 3, 'message'] }]);
});
