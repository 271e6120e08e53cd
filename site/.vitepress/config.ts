import { posix } from 'node:path';
import { defineConfig } from 'vitepress';

/** Where readers find the files of the project that are no pages, such as charts. Without it they are not linked. */
const repository = process.env.REPOSITORY_URL?.replace(/\/$/, '');

const page = (text: string, link: string) => ({ text, link });

export default defineConfig({
  title: 'Argo CD fleet',
  description: 'A fleet of Kubernetes clusters, one Argo CD UI',
  lang: 'en',
  // A copy of ../docs: build.ts.
  srcDir: 'pages',
  outDir: '../dist/site',
  cacheDir: '../.cache/vitepress',
  cleanUrls: true,
  lastUpdated: false,
  markdown: {
    config: (markdown) => {
      // Links from a page to other files of the project.
      markdown.core.ruler.push('files-of-the-project', ({ tokens, env }) => {
        const folder = posix.join('docs', posix.dirname((env as { relativePath?: string }).relativePath ?? ''));
        for (const { children } of tokens) {
          for (const token of children ?? []) {
            const target = token.type === 'link_open' ? token.attrGet('href') : null;
            if (target === null || !target.startsWith('../')) {
              continue;
            }
            const path = posix.join(folder, target);
            if (path.startsWith('docs/')) {
              continue;
            }
            if (repository === undefined) {
              token.tag = 'span';
              token.attrs = null;
            } else {
              token.attrSet('href', `${repository}/blob/main/${path}`);
            }
          }
          closeSpans(children ?? []);
        }
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      page('Why', '/why'),
      page('Install', '/install'),
      page('Operate', '/troubleshooting'),
      page('Reference', '/reference/argocd-agent'),
    ],
    sidebar: [
      {
        text: 'Start',
        items: [
          page('Why and when', '/why'),
          page('The demo', '/demo'),
          page('Install', '/install'),
          page('What clusters get', '/clusters'),
        ],
      },
      {
        text: 'Come in, and go back',
        items: [
          page('From argocd-pull-integration', '/takeover'),
          page('From push to pull', '/install#from-push-to-pull'),
          page('Without Open Cluster Management', '/install#without-open-cluster-management'),
          page('The basic pull model', '/basic-pull-model'),
        ],
      },
      {
        text: 'Understand',
        items: [
          page('Architecture', '/architecture'),
          page('What is kept in sync', '/synchronisation'),
          page('Live access', '/live-access'),
          page('Security', '/security'),
          page('The protocol', '/protocol'),
          page('Glossary', '/glossary'),
        ],
      },
      {
        text: 'Operate',
        items: [
          page('Troubleshooting', '/troubleshooting'),
          page('argocd-agentctl', '/argocd-agentctl'),
          page('The fleet page', '/fleet-page'),
          page('Upgrades and version skew', '/upgrades'),
          page('Backup and restore', '/backup'),
          page('A second hub', '/second-hub'),
          page('How large a hub can be', '/scale'),
          page('Metrics', '/metrics'),
          page('Runbooks of alerts', '/runbooks'),
          page('Events of the fleet', '/fleet-events'),
          page('Ecosystem', '/ecosystem'),
        ],
      },
      {
        text: 'Reference',
        items: [
          page('argocd-agent', '/reference/argocd-agent'),
          page('gitops-controller', '/reference/gitops-controller'),
          page('argocd-agentctl', '/reference/argocd-agentctl'),
          page('GitOpsCluster', '/reference/gitopscluster'),
          page('Conditions', '/reference/conditions'),
          page('Events', '/reference/events'),
          page('Labels and annotations', '/reference/metadata'),
          page('Defects of the originals', '/defects'),
        ],
      },
      {
        text: 'Contribute',
        items: [page('Development', '/development'), page('Decisions', '/decisions')],
      },
    ],
  },
});

interface MarkdownToken {
  readonly type: string;
  tag: string;
}

/** A link that became a span ends as one. */
function closeSpans(tokens: readonly MarkdownToken[]): void {
  let isSpan = false;
  for (const token of tokens) {
    if (token.type === 'link_open') {
      isSpan = token.tag === 'span';
    } else if (token.type === 'link_close' && isSpan) {
      token.tag = 'span';
    }
  }
}
