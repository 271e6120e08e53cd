import { spawnSync } from 'node:child_process';
import { z } from 'zod';

/** What is known about vulnerabilities of the packages that the programs are made with. */
export type PackageAudit =
  | { readonly result: 'clean' }
  | { readonly result: 'vulnerable'; readonly packages: readonly string[] }
  | { readonly result: 'unknown'; readonly reason: string };

const report = z.object({
  vulnerabilities: z.record(z.string(), z.object({ severity: z.string(), range: z.string() })),
});
const failure = z.object({ message: z.string() });

/** Asks the registry for vulnerabilities of severity high or critical (`npm audit`). */
export function auditPackages(root: string): PackageAudit {
  const { stdout, error } = spawnSync('npm', ['audit', '--json', '--omit=dev'], { cwd: root, encoding: 'utf8' });
  return error === undefined ? readAudit(stdout) : { result: 'unknown', reason: error.message };
}

/** What `npm audit --json` says; unknown when the registry gave no answer. */
export function readAudit(text: string): PackageAudit {
  const said = parsed(text);
  const { data } = report.safeParse(said);
  if (data === undefined) {
    return { result: 'unknown', reason: failure.safeParse(said).data?.message ?? 'npm audit printed no report' };
  }
  const packages = Object.entries(data.vulnerabilities)
    .filter(([, { severity }]) => severity === 'high' || severity === 'critical')
    .map(([name, { severity, range }]) => `${name} ${range} (${severity})`);
  return packages.length === 0 ? { result: 'clean' } : { result: 'vulnerable', packages };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // said by the caller
  }
}
