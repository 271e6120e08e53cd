import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';
import { expect } from 'vitest';
import type { AuthRequest, ClientInfo } from '../index.ts';

/** A request to log in that lacks nothing but what the method wants. */
export const request: AuthRequest = {
  method: 'mtls',
  credentials: {},
  mode: 'managed',
  version: '1',
  agentNamespace: 'argocd',
};

/** Whoever is at the other end of a connection. */
export function peer(options: { certificate?: X509Certificate; headers?: Record<string, string> } = {}): ClientInfo {
  const { certificate, headers } = options;
  return {
    address: '127.0.0.1:1',
    encrypted: true,
    ...(certificate === undefined ? undefined : { certificate }),
    header: (name) => headers?.[name],
  };
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** A certificate with this subject. */
export async function certificateOf(
  subject: Record<string, string[]>[],
  uris: string[] = [],
): Promise<X509Certificate> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: subject,
    keys,
    signingAlgorithm: algorithm,
    extensions:
      uris.length === 0 ? [] : [new SubjectAlternativeNameExtension(uris.map((value) => ({ type: 'url', value })))],
  });
  return new X509Certificate(certificate.toString('pem'));
}

/** Matches an AuthError of this code. */
export const authError = (code: string) => expect.objectContaining({ name: 'AuthError', code });
