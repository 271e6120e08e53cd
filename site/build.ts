/* `npm run docs [-- BASE]`: the documentation site, in dist/site. BASE is the path under which it is served, by default `/`. */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const site = import.meta.dirname;
const pages = join(site, 'pages');
const base = process.argv[2] ?? '/';
const run = (command: string, ...args: string[]) => execFileSync(command, args, { cwd: site, stdio: 'inherit' });

run('npm', 'ci', '--no-audit', '--no-fund', '--silent');
// Below the folder of its packages, so that they are found from every page.
rmSync(pages, { recursive: true, force: true });
cpSync(join(site, '../docs'), pages, { recursive: true });
try {
  run('npx', '--no-install', 'vitepress', 'build', '.', '--base', base);
} finally {
  rmSync(pages, { recursive: true, force: true });
}
