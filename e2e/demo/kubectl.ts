/* kubectl of the testbed, with the arguments of this program; its first use may have to make it. */
import { spawn } from 'node:child_process';
import { toolPath } from '../tools/index.ts';

const kubectl = spawn(await toolPath('kubectl'), process.argv.slice(2), { stdio: 'inherit' });
// Ctrl-C reaches kubectl by itself, which ends as it likes.
process.on('SIGINT', () => undefined);
kubectl.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
