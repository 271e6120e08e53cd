import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** A link of a page that leads nowhere, in words. */
export function brokenLinks(root: string, page: string): string[] {
  const text = withoutCode(readFileSync(join(root, page), 'utf8'));
  const targets = [...text.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)].map(([, target = '']) => target);
  return targets.flatMap((target) => problem(root, page, target) ?? []);
}

function problem(root: string, page: string, target: string): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(target)) {
    return undefined;
  }
  const [path = '', anchor] = target.split('#', 2);
  const file = path === '' ? join(root, page) : resolve(root, dirname(page), decodeURIComponent(path));
  if (relative(root, file).startsWith('..') || !existsSync(file)) {
    return `${page}: ${target} does not exist`;
  }
  if (anchor === undefined || statSync(file).isDirectory() || !file.endsWith('.md')) {
    return undefined;
  }
  return anchorsOf(readFileSync(file, 'utf8')).has(decodeURIComponent(anchor))
    ? undefined
    : `${page}: ${target} has no such heading`;
}

/** The anchors of a page, as GitHub makes them of headings, and those that it sets itself. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const text = withoutCode(markdown);
  const found = new Set([...text.matchAll(/<a id="([^"]+)"/g)].map(([, id = '']) => id));
  for (const [, heading = ''] of text.matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = slugOf(heading);
    let unique = slug;
    for (let count = 1; found.has(unique); count++) {
      unique = `${slug}-${count}`;
    }
    found.add(unique);
  }
  return found;
}

function slugOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Mark}\p{Number}\p{Connector_Punctuation}\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** Fenced blocks hold no links and no headings. */
function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^(```+|~~~+)[\s\S]*?^\1\s*$/gm, '');
}
