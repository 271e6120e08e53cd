import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { anchorsOf } from './links.ts';

// What somebody asks who sees this project for the first time. Each answer is at most two clicks from the start page of the
// site, and stands below a heading that the page's outline shows.

const questions: readonly [question: string, page: string, anchor: string, answer: RegExp][] = [
  [
    'How is it different from Flux, or from an Argo CD that pushes?',
    'why',
    'the-ways-to-run-argo-cd-for-many-clusters',
    /Flux/,
  ],
  ['When should I take something else?', 'why', 'choose-something-else-when', /plain Argo CD/],
  ['What do I need, which ports?', 'install', 'what-you-need', /one port of the principal/],
  ['How do I install it?', 'install', 'install', /helm install/],
  [
    'And without Open Cluster Management?',
    'install',
    'without-open-cluster-management',
    /argocd-agent enroll|argocd-agent pki/,
  ],
  ['I run argocd-agent today. Can I go back?', 'takeover', 'give-back', /gitops-controller release/],
  ['How many clusters can one hub have?', 'scale', 'what-a-fleet-needs', /10,000 clusters/],
  ['What can a hostile cluster do?', 'security', 'security', /a managed cluster/i],
  ['What if the hub is lost?', 'second-hub', 'unplanned-failover', /ha promote/],
  ['A cluster shows nothing. What is wrong?', 'troubleshooting', 'troubleshooting', /argocd-agentctl doctor/],
  ['How do I upgrade, and roll back?', 'upgrades', 'roll-back', /helm rollback/],
];

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const startPage = read('docs/index.md');
const [beforeSidebar = '', sidebar = ''] = read('site/.vitepress/config.ts').split('sidebar:');

/** The pages that a text links, without their anchors. */
const linked = (text: string, pattern: RegExp) => new Set([...text.matchAll(pattern)].map(([, page = '']) => page));
const oneClick = new Set([
  ...linked(startPage, /link: \/([\w/-]+)/g),
  ...linked(beforeSidebar, /page\('[^']+', '\/([\w/-]+)/g),
]);
const inSidebar = linked(sidebar, /page\('[^']+', '\/([\w/-]+)/g);

/** What stands below a heading, up to the next one of the same level. */
function sectionOf(markdown: string, anchor: string): string {
  // A comment in a block of code is no heading.
  const text = markdown.replaceAll(/^```[\s\S]*?^```/gm, (block) => block.replaceAll(/^#/gm, ' #'));
  const parts = text.split(/^(?=#{1,3} )/m);
  const at = parts.findIndex((part) => anchorsOf(part.split('\n', 1)[0] ?? '').has(anchor));
  const level = /^#+/.exec(parts[at] ?? '')?.[0].length ?? 0;
  const rest = parts.slice(at + 1);
  const end = rest.findIndex((part) => (/^#+/.exec(part)?.[0].length ?? 0) <= Math.max(level, 2));
  return [parts[at] ?? '', ...(end === -1 ? rest : rest.slice(0, end))].join('');
}

describe.each(questions)('%s', (_, page, anchor, answer) => {
  test('at most two clicks', () => {
    // Every page that is one click away has the sidebar.
    expect(oneClick.has(page) || inSidebar.has(page)).toBe(true);
  });
  test('the answer stands there', () => {
    expect(sectionOf(read(`docs/${page}.md`), anchor)).toMatch(answer);
  });
});
