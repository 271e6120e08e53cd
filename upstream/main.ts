/* `npm run upstream`: what the projects that this one follows have and this one does not know. */
import { runUpstream } from './command.ts';

process.exitCode = runUpstream(
  process.argv.slice(2),
  (text) => process.stdout.write(text),
  (text) => process.stderr.write(text),
);
