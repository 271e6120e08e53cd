import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { argocdAgent } from '../../bin/argocd-agent-commands.ts';
import { gitOpsController } from '../../bin/gitops-controller-commands.ts';
import { ctlExecutable } from '../../ctl/index.ts';
import { commandsPage } from './commands.ts';
import { conditionsPage } from './conditions.ts';
import { customResourcePage } from './custom-resource.ts';
import { eventsPage } from './events.ts';
import { metadataPage } from './metadata.ts';

const root = join(import.meta.dirname, '../..');
const crd = join(root, 'charts/argocd-agent-addon/crds/gitopsclusters.yaml');

/** The folder of the generated pages. */
export const referenceFolder = join(root, 'docs/reference');

/** The generated pages, by file name. */
export const referencePages = (): Readonly<Record<string, string>> => ({
  'argocd-agent.md': commandsPage(argocdAgent),
  'argocd-agentctl.md': commandsPage(ctlExecutable()),
  'conditions.md': conditionsPage(),
  'events.md': eventsPage(),
  'gitops-controller.md': commandsPage(gitOpsController),
  'gitopscluster.md': customResourcePage(readFileSync(crd, 'utf8')),
  'metadata.md': metadataPage(),
});
