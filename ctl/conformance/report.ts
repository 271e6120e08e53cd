import { jsonText, textTable } from '../output.ts';
import type { CaseResult } from './case.ts';

/** A report of the suite: `text` or `json`. */
export function conformanceReport(results: readonly CaseResult[], target: string, format: string): string {
  const count = (outcome: CaseResult['outcome']) => results.filter((one) => one.outcome === outcome).length;
  const summary = { passed: count('passed'), failed: count('failed'), skipped: count('skipped') };
  if (format === 'json') {
    return jsonText({ target, ...summary, cases: results.map((one) => ({ ...one })) }, 2);
  }
  const rows = results.map(({ outcome, section, name, seen }) => [outcome, section, name, seen]);
  const counts = `${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped`;
  return `${textTable([['OUTCOME', 'SECTION', 'CASE', 'SEEN'], ...rows])}\n${target}: ${counts}\n`;
}
