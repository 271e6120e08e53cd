import { expect, test } from 'vitest';
import { readAudit } from './audit.ts';

const found = (severity: string) => ({ name: 'a', severity, isDirect: true, via: [], effects: [], range: '<1.2.3' });
const said = (vulnerabilities: object) => JSON.stringify({ auditReportVersion: 2, vulnerabilities, metadata: {} });

test('packages with a high or critical vulnerability are named', () => {
  const text = said({ a: found('critical'), b: found('high'), c: found('moderate') });
  expect(readAudit(text)).toEqual({ result: 'vulnerable', packages: ['a <1.2.3 (critical)', 'b <1.2.3 (high)'] });
});

test('others do not stop a release', () => {
  expect(readAudit(said({}))).toEqual({ result: 'clean' });
  expect(readAudit(said({ c: found('moderate') }))).toEqual({ result: 'clean' });
});

test('a registry without an answer is not taken for a clean one', () => {
  const refused = JSON.stringify({ message: '405 Method Not Allowed', statusCode: 405, error: { summary: '' } });
  expect(readAudit(refused)).toEqual({ result: 'unknown', reason: '405 Method Not Allowed' });
  expect(readAudit('')).toEqual({ result: 'unknown', reason: 'npm audit printed no report' });
});
