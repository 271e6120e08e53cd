import { generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { Random } from '../../e2e/random/index.ts';
import { maxGrownBytes, maxTurnMs, StepMeter } from '../../e2e/random/meters.ts';
import { effort } from '../../lib/base/testing.ts';
import type { CertificateSigningRequest } from '../../lib/kube/index.ts';
import { createAuthority, lifetimes } from '../../lib/pki/index.ts';
import { agentSubject } from '../hub/index.ts';
import { Signer } from './signer.ts';

// Clusters send certificate signing requests of every form: right ones, ones for other clusters, spoilt and huge ones. Most are
// signed with their key, so that their content is read. SEED=<number> repeats a run.

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const count = effort(400, 10_000);

/** Clusters that may request certificates, one that gets a generated one, and one that no GitOpsCluster selects. */
const enrolled = ['c1', 'c10'];
const clusters = [...enrolled, 'generated', 'stranger'];
const now = new Date();

/** Bytes of one DER element. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) {
    return Buffer.concat([Buffer.from([tag, length]), content]);
  }
  const size = Buffer.alloc(4);
  size.writeUInt32BE(length);
  const digits = size.subarray(size.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.from([tag, 0x80 | digits.length]), digits, content]);
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts);
const set = (...parts: readonly Uint8Array[]) => der(0x31, ...parts);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const types = {
  commonName: oid('550403'),
  organization: oid('55040a'),
  unit: oid('55040b'),
  email: oid('2a864886f70d010901'),
  unknown: oid('2b06010401868d1f01'),
} as const;
const extensionTypes = {
  alternativeNames: oid('551d11'),
  basicConstraints: oid('551d13'),
  keyUsage: oid('551d0f'),
  unknown: oid('2b06010401868d1f02'),
} as const;
const extensionRequest = oid('2a864886f70d01090e');
const challengePassword = oid('2a864886f70d010907');

interface Key {
  readonly key: KeyObject;
  readonly spki: Buffer;
  readonly algorithm: Buffer;
  readonly hash: string | null;
}
const ecdsa = sequence(oid('2a8648ce3d040302'));
const rsa = sequence(oid('2a864886f70d01010b'), der(0x05));
const keyOf = (pair: { publicKey: KeyObject; privateKey: KeyObject }, algorithm: Buffer, hash: string | null): Key => ({
  key: pair.privateKey,
  spki: pair.publicKey.export({ type: 'spki', format: 'der' }),
  algorithm,
  hash,
});
const ec = (namedCurve: string) => keyOf(generateKeyPairSync('ec', { namedCurve }), ecdsa, 'sha256');
const good = ec('P-256');
const keys: readonly Key[] = [
  good,
  ec('P-384'),
  ec('secp256k1'),
  keyOf(generateKeyPairSync('ed25519'), sequence(oid('2b6570')), null),
  keyOf(generateKeyPairSync('rsa', { modulusLength: 1024 }), rsa, 'sha256'),
  keyOf(generateKeyPairSync('rsa', { modulusLength: 2048 }), rsa, 'sha256'),
];

function oddBytes(random: Random): Buffer {
  return random.pick([
    () => Buffer.alloc(0),
    () => Buffer.from('\u0000\n\u202e"\u001b[31m'),
    () => Buffer.from(random.pick(clusters)),
    () => Buffer.from(agentSubject(random.pick(clusters)).commonName),
    () => Buffer.from([0x30, 0x80, 0x30, 0x84, 0xff, 0xff, 0xff, 0xff]),
    () => Buffer.from(Array.from({ length: random.integer(1, 40) }, () => random.integer(0, 255))),
    () => Buffer.alloc(random.integer(1, 3_000), 'x'),
    () => Buffer.alloc(random.integer(1, 3_000), Buffer.from([0x30, 0x80])),
    () => Buffer.alloc(random.chance(0.2) ? 1_000_000 : 5_000, Buffer.from([0x05, 0x00])),
  ])();
}

function textValue(text: string, random: Random): Buffer {
  if (random.chance(0.97)) {
    return der(0x0c, Buffer.from(text));
  }
  return random.pick([
    () => der(0x13, Buffer.from(text)),
    () => der(0x16, Buffer.from(text)),
    () => der(0x1e, Buffer.from(text, 'utf16le').swap16()),
    () => der(0x04, Buffer.from(text)),
    () => der(0x0c, Buffer.from(`${text}\u0000`)),
    () => sequence(der(0x0c, Buffer.from(text))),
    () => der(random.integer(0, 255), oddBytes(random)),
  ])();
}

/** The subject of a cluster's agent, spoilt or not. */
function subjectOf(cluster: string, random: Random): Buffer {
  const { commonName, organizations } = agentSubject(cluster);
  let attributes = [
    ...organizations.map((text) => sequence(types.organization, textValue(text, random))),
    sequence(types.commonName, textValue(commonName, random)),
  ];
  if (random.chance(0.2)) {
    const type = random.pick(Object.values(types));
    attributes = random.pick([
      () => [...attributes, random.pick(attributes)],
      () => attributes.slice(1),
      () => random.shuffle(attributes),
      () => [...attributes, sequence(type, textValue(agentSubject(random.pick(clusters)).commonName, random))],
      () => [...attributes, sequence(type, der(0x0c, oddBytes(random)))],
      () => [...attributes, oddBytes(random)],
      () => [Buffer.concat(attributes)],
    ])();
  }
  return sequence(...attributes.map((one) => set(one)));
}

/** The attributes of a request: the alternative names that OCM asks for, others, and other extensions. */
function attributesOf(random: Random): Buffer {
  const name = (text: string) => der(0x82, Buffer.from(text));
  const names = [name('argocd-agent-addon.addon.open-cluster-management.io')];
  if (random.chance(0.15)) {
    const other = random.pick([
      () => name('principal.example.com'),
      () => der(0x87, Buffer.from([10, 0, 0, 1])),
      () => der(random.pick([0x80, 0x81, 0x86, 0x87, 0x88, 0xa0, 0xa4, 0xbf]), oddBytes(random)),
      () => Buffer.concat(Array.from({ length: random.integer(1, 200) }, () => name('x'))),
      () => oddBytes(random),
    ])();
    names.push(other);
  }
  const extensions = [sequence(extensionTypes.alternativeNames, der(0x04, sequence(...names)))];
  if (random.chance(0.1)) {
    extensions.push(
      sequence(random.pick(Object.values(extensionTypes)), der(0x01, Buffer.from([0xff])), der(0x04, oddBytes(random))),
    );
  }
  const attributes = [sequence(extensionRequest, set(sequence(...extensions)))];
  if (random.chance(0.1)) {
    const type = random.pick([extensionRequest, challengePassword, types.unknown]);
    attributes.push(sequence(type, random.pick([set(oddBytes(random)), oddBytes(random), set()])));
  }
  return der(0xa0, ...(random.chance(0.05) ? [] : random.shuffle(attributes)));
}

function signed(info: Buffer, { key, algorithm, hash }: Key): Buffer {
  return sequence(info, algorithm, der(0x03, Buffer.from([0]), sign(hash, info, key)));
}

function flipped(bytes: Buffer, random: Random): Buffer {
  const copy = Buffer.from(bytes);
  for (let flips = random.integer(1, 4); flips > 0; flips--) {
    const at = random.integer(0, copy.length - 1);
    copy[at] = (copy[at] ?? 0) ^ (1 << random.integer(0, 7));
  }
  return copy;
}

function pemOf(bytes: Buffer): string {
  const lines = bytes.toString('base64').replace(/(.{64})/g, '$1\n');
  return `-----BEGIN CERTIFICATE REQUEST-----\n${lines}\n-----END CERTIFICATE REQUEST-----\n`;
}

function spoiltPem(pem: string, random: Random): string {
  return random.pick([
    () => pem.slice(0, random.integer(0, pem.length)),
    () => pem.replaceAll('\n', '\r\n'),
    () => pem.replaceAll('CERTIFICATE REQUEST', random.pick(['CERTIFICATE', 'NEW CERTIFICATE REQUEST', ''])),
    () => `${pem}${pem}`,
    () => pem.replace('-----\n', `-----\nProc-Type: ${oddBytes(random)}\n\n`),
    () => `${oddBytes(random)}\n${pem}`,
    () => '-----BEGIN CERTIFICATE REQUEST-----\n'.repeat(random.integer(1, 400)),
    () => pem.replaceAll(/-----.*\n/g, ''),
    () => '',
  ])();
}

interface Sent {
  readonly csr: CertificateSigningRequest;
  /** The key that a certificate must be for. */
  readonly key: Key;
}

/** A request as the API server has it: the API server knows who sent it; everything else is the sender's. */
function requestOf(name: string, random: Random): Sent {
  const sender = random.pick(clusters);
  const cluster = random.chance(0.9) ? sender : random.pick([...clusters, '', '__proto__']);
  const key = random.chance(0.8) ? good : random.pick(keys);
  const version = der(0x02, random.chance(0.02) ? oddBytes(random) : Buffer.from([0]));
  const subject = subjectOf(random.chance(0.95) ? cluster : random.pick(clusters), random);
  const info = sequence(version, subject, key.spki, attributesOf(random));
  const whole = signed(info, random.chance(0.97) ? key : random.pick(keys));
  const pem = pemOf(random.chance(0.05) ? flipped(whole, random) : whole);
  const group = `system:open-cluster-management:${sender}`;
  const user = random.chance(0.97) ? 'agent' : random.pick(['', 'addon:x', 'a\nb', 'x'.repeat(5_000)]);
  const usages = ['digital signature', 'key encipherment', 'client auth', 'server auth', 'cert sign'];
  const csr = {
    metadata: {
      name,
      resourceVersion: '1',
      creationTimestamp: new Date(now.getTime() - (random.chance(0.02) ? 2 : 0.5) * 3_600_000).toISOString(),
      labels: {
        ...(random.chance(0.99) ? { 'open-cluster-management.io/cluster-name': cluster } : {}),
        'open-cluster-management.io/addon-name': random.chance(0.99) ? 'argocd-agent-addon' : 'other',
      },
    },
    spec: {
      request: Buffer.from(random.chance(0.05) ? spoiltPem(pem, random) : pem).toString('base64'),
      signerName: 'open-cluster-management.io/argocd-agent-addon',
      usages: random.chance(0.95) ? usages.slice(0, 3) : random.shuffle(usages).slice(0, random.integer(0, 5)),
      username: `${group}:${user}`,
      groups: random.chance(0.97) ? [group, 'system:authenticated'] : ['system:authenticated'],
      ...(random.chance(0.1) ? { expirationSeconds: random.pick([600, 86_400, 2 ** 31 - 1]) } : {}),
    },
    ...(random.chance(0.05) ? { status: { conditions: [{ type: 'Approved', status: 'True' }] } } : {}),
  } as CertificateSigningRequest;
  return { csr, key };
}

interface Answer {
  readonly conditions: readonly { type: string; message: string }[];
  readonly certificate: X509Certificate | undefined;
  /** The clusters whose add-ons were changed. */
  readonly addOns: readonly string[];
}

async function startSigner() {
  const authority = await createAuthority({ commonName: 'authority' });
  const issuer = new X509Certificate(authority.certificate);
  let csr: CertificateSigningRequest;
  let patches: {
    namespace?: string;
    status?: { conditions?: { type: string; message: string }[]; certificate?: string };
  }[];
  const foundation = (clientCertificate: string) => ({ authority, addOn: { clientCertificate } });
  const signer = new Signer({
    caches: {
      requests: { get: () => csr },
      addOns: { get: () => ({ metadata: {} }) },
      ownSecrets: { get: () => undefined },
      works: { list: () => [] },
    },
    ownership: {
      ownerOf: (cluster: string) => ({
        owner: enrolled.includes(cluster) ? 'argocd/fleet' : cluster === 'generated' ? 'argocd/other' : undefined,
      }),
    },
    foundations: new Map([
      ['argocd/fleet', foundation('CSR')],
      ['argocd/other', foundation('Generated')],
    ]),
    client: {
      mergePatch: async (_type: unknown, key: object, patch: { status?: object }) => {
        patches.push({ ...key, ...patch });
        csr = {
          ...csr,
          ...(patch.status && { status: { ...csr.status, ...patch.status } }),
        } as CertificateSigningRequest;
        return csr;
      },
    },
    events: { warning: () => undefined },
    logger: { info: () => undefined, warn: () => undefined },
    now: () => now,
  } as never);
  const answer = async (sent: CertificateSigningRequest): Promise<Answer> => {
    [csr, patches] = [sent, []];
    const { signal } = new AbortController();
    if (await signer.reconcile(sent.metadata.name, signal)) {
      // The add-on has come to rest.
      const later = vi.spyOn(performance, 'now').mockReturnValue(Number.POSITIVE_INFINITY);
      await signer.reconcile(sent.metadata.name, signal);
      later.mockRestore();
    }
    const certificate = patches.find(({ status }) => status?.certificate !== undefined)?.status?.certificate;
    return {
      conditions: patches.flatMap(({ status }) => status?.conditions?.at(-1) ?? []),
      certificate: certificate === undefined ? undefined : new X509Certificate(Buffer.from(certificate, 'base64')),
      addOns: patches.flatMap(({ namespace }) => namespace ?? []),
    };
  };
  return { answer, issuer };
}

test(
  `${count} certificate signing requests: a cluster gets its own certificate or a reason (SEED=${seed})`,
  async () => {
    console.log(`SEED=${seed}`);
    const { answer, issuer } = await startSigner();
    // Code is compiled with the first requests.
    for (let at = 0; at < 20; at++) {
      await answer(requestOf('first', new Random(at)).csr);
    }
    const reasons = new Map<string, number>();
    const meter = new StepMeter();
    let issued = 0;
    for (let at = 0; at < count; at++) {
      const what = `SEED=${seed}, request ${at}`;
      const { csr, key } = requestOf(`csr-${at}`, new Random(seed + at));
      const { value, ms } = await meter.measure(() => answer(csr));
      expect(ms, what).toBeLessThan(maxTurnMs);
      const { conditions, certificate, addOns } = value;
      const cluster = csr.metadata.labels?.['open-cluster-management.io/cluster-name'] ?? '';
      if (certificate === undefined) {
        for (const { type, message } of conditions) {
          expect(['Denied', 'Failed'], what).toContain(type);
          expect(message.length, what).toBeLessThan(1_024);
          expect(message, what).toMatch(/^(its? |an? |the |cluster |GitOpsCluster |no GitOpsCluster )/);
          const reason = message.replaceAll(/["0-9].*/gs, '');
          reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
        }
        expect(addOns, what).toEqual([]);
        continue;
      }
      issued++;
      const { commonName, organizations } = agentSubject(cluster);
      expect(certificate.subject.split('\n').sort(), what).toEqual(
        [`CN=${commonName}`, ...organizations.map((text) => `O=${text}`)].sort(),
      );
      expect(enrolled, what).toContain(cluster);
      expect(csr.spec?.username?.split(':').slice(0, -1).join(':'), what).toBe(
        `system:open-cluster-management:${cluster}`,
      );
      expect(addOns, what).toEqual([cluster]);
      expect(certificate.publicKey.export({ type: 'spki', format: 'der' }).equals(key.spki), what).toBe(true);
      expect(certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey), what).toBe(true);
      expect({ ca: certificate.ca, usages: certificate.keyUsage, names: certificate.subjectAltName }, what).toEqual({
        ca: false,
        usages: ['1.3.6.1.5.5.7.3.2'],
        names: undefined,
      });
      expect(certificate.validToDate.getTime(), what).toBeLessThanOrEqual(now.getTime() + lifetimes.requestedMs);
    }
    console.log(
      `${issued} issued; ${meter}\n${[...reasons].map(([reason, times]) => `${times} × ${reason}`).join('\n')}`,
    );
    expect(meter.grownBytes).toBeLessThan(maxGrownBytes);
    // Many were issued, and others refused for many reasons.
    expect(issued).toBeGreaterThan(count / 20);
    expect(reasons.size).toBeGreaterThan(8);
  },
  effort(150_000, 3_600_000),
);
