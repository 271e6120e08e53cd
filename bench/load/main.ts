/* The load generator: managed agents by the hundred in a process of their own. `Generator` starts it. */
import { LoadFleet } from './fleet.ts';
import { agentCertificates } from './pki.ts';
import type { LoadCommand, LoadReport, LoadSetting } from './protocol.ts';

const [setting = ''] = process.argv.slice(2);
const { pki, ...options } = JSON.parse(setting) as LoadSetting;
const report = (what: LoadReport) => void process.send?.(what);
const certificates = await agentCertificates(pki, options.agents);
const fleet = new LoadFleet({ ...options, certificates, report });
process.on('message', (command: LoadCommand) => {
  switch (command.do) {
    case 'connect':
      fleet.start();
      break;
    case 'count':
      report({ is: 'counted', id: command.id, ...fleet.counts() });
  }
});
const end = async () => {
  await fleet.stop();
  process.exit(0);
};
process.once('SIGTERM', end);
process.once('disconnect', end);
report({ is: 'ready' });
