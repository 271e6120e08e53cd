import 'reflect-metadata';
import type { X509Certificate } from 'node:crypto';
import { Name, X509Certificate as ParsedCertificate, SubjectAlternativeNameExtension } from '@peculiar/x509';

/** The attributes that Go names, in the order in which its `pkix.Name` prints them. */
const goOrder = ['SERIALNUMBER', 'CN', 'POSTALCODE', 'STREET', 'ST', 'L', 'OU', 'O', 'C'] as const;

type GoName = (typeof goOrder)[number];

const goNames: Readonly<Record<string, GoName>> = {
  C: 'C',
  '2.5.4.6': 'C',
  O: 'O',
  '2.5.4.10': 'O',
  OU: 'OU',
  '2.5.4.11': 'OU',
  CN: 'CN',
  '2.5.4.3': 'CN',
  L: 'L',
  '2.5.4.7': 'L',
  ST: 'ST',
  '2.5.4.8': 'ST',
  '2.5.4.5': 'SERIALNUMBER',
  '2.5.4.9': 'STREET',
  '2.5.4.17': 'POSTALCODE',
};

/** Object identifiers of the other attributes that the parser names. */
const oids: Readonly<Record<string, string>> = {
  DC: '0.9.2342.19200300.100.1.25',
  E: '1.2.840.113549.1.9.1',
  G: '2.5.4.42',
  I: '2.5.4.43',
  SN: '2.5.4.4',
  T: '2.5.4.12',
};

/** Attributes of which only the last value in the certificate counts. */
const single: ReadonlySet<GoName> = new Set(['CN', 'SERIALNUMBER']);

/**
 * The subject of a certificate as Go's `pkix.Name.String` writes it, because operators write regular expressions for
 * argocd-agent's principal against that form: comma-separated, common name before organisation, equal attributes joined
 * by `+`.
 */
export function subjectOf(certificate: X509Certificate): string {
  const known = new Map<GoName, string[]>();
  const others: string[] = [];
  for (const part of nameOf(certificate).toJSON()) {
    for (const [type, values] of Object.entries(part)) {
      const name = goNames[type];
      for (const value of values) {
        if (name === undefined) {
          others.push(`${oids[type] ?? type}=#${marshal(value)}`);
        } else if (single.has(name)) {
          known.set(name, [value]);
        } else {
          known.set(name, [...(known.get(name) ?? []), value]);
        }
      }
    }
  }
  const parts = goOrder.flatMap((name) => {
    const values = known.get(name);
    return values === undefined ? [] : [values.map((value) => `${name}=${escapeValue(value)}`).join('+')];
  });
  return [...parts, ...others.reverse()].join(',');
}

/** The common name of a certificate's subject: the last one, as in Go's `Subject.CommonName`. Undefined without one. */
export function commonNameOf(certificate: X509Certificate): string | undefined {
  return nameOf(certificate).getField('CN').at(-1);
}

/** The URIs among the alternative names of a certificate, in order. */
export function urisOf(certificate: X509Certificate): string[] {
  const names = new ParsedCertificate(certificate.raw).getExtension(SubjectAlternativeNameExtension)?.names.toJSON();
  return (names ?? []).filter((name) => name.type === 'url').map((name) => name.value);
}

/** SHA-256 of a certificate in upper-case hex without separators: its key in the ConfigMap of blocked certificates. */
export function fingerprintOf(certificate: X509Certificate): string {
  return certificate.fingerprint256.replaceAll(':', '');
}

/** Reads the subject alone: parsing a whole certificate takes twenty times as long, for every agent that connects. */
function nameOf({ raw }: X509Certificate): Name {
  // Certificate → tbsCertificate → version (optional), serial number, signature, issuer, validity, subject (RFC 5280).
  let at = contentOf(raw, contentOf(raw, 0).start).start;
  const version = 0xa0;
  if (raw[at] === version) {
    at = contentOf(raw, at).end;
  }
  for (let field = 0; field < 4; field++) {
    at = contentOf(raw, at).end;
  }
  return new Name(raw.subarray(at, contentOf(raw, at).end));
}

/** The bounds of a DER element's content. OpenSSL has parsed the whole certificate before. */
function contentOf(der: Buffer, offset: number): { start: number; end: number } {
  const first = der.readUInt8(offset + 1);
  const start = offset + 2;
  if (first < 0x80) {
    return { start, end: start + first };
  }
  const bytes = first - 0x80;
  return { start: start + bytes, end: start + bytes + der.readUIntBE(start, bytes) };
}

function escapeValue(value: string): string {
  let escaped = '';
  const characters = [...value];
  for (const [index, character] of characters.entries()) {
    const isEdgeSpace = character === ' ' && (index === 0 || index === characters.length - 1);
    const isFirstHash = character === '#' && index === 0;
    escaped += isEdgeSpace || isFirstHash || ',+"\\<>;'.includes(character) ? `\\${character}` : character;
  }
  return escaped;
}

const printable = /^[A-Za-z0-9 '()+,./:=?-]*$/;

/** A string in DER as Go encodes it: PrintableString where that is possible, else UTF8String; in hex. */
function marshal(value: string): string {
  const bytes = Buffer.from(value, 'utf8');
  const tag = printable.test(value) ? 0x13 : 0x0c;
  const { length } = bytes;
  const prefix = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...prefix]), bytes]).toString('hex');
}
