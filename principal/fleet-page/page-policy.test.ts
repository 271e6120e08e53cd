import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MadeUpFleet, serveMadeUpFleet } from './testing/made-up-fleet.ts';
import { hostileFleet } from './testing/sample-fleets.ts';

let fleet: MadeUpFleet;
let session: string;
beforeAll(async () => {
  fleet = await serveMadeUpFleet(hostileFleet(3));
  session = await fleet.session();
});
afterAll(() => fleet?.close());

const pages = ['', '?view=table', '?q=%3Cscript%3E', 'clusters/hostile-0'];
const get = (path: string, authorization = `Bearer ${session}`) =>
  fetch(fleet.url + path, { redirect: 'manual', headers: authorization === '' ? {} : { authorization } });

test.each([
  ...pages.map((path) => [path, 200] as const),
  ['assets/fleet.js', 200],
  ['assets/fleet.css', 200],
  ['clusters/nobody', 404],
  ['nothing', 404],
] as const)('/%s allows our own files alone, and nothing inline', async (path, status) => {
  const response = await get(path);
  expect(response.status).toBe(status);
  await response.text();
  const text = response.headers.get('content-security-policy') ?? '';
  const policy = new Map(
    text.split(';').map((directive) => {
      const [name = '', ...sources] = directive.trim().split(' ');
      return [name, sources.join(' ')];
    }),
  );
  expect(text).not.toMatch(/unsafe|data:|\*|nonce|https?:/);
  expect(policy.get('default-src')).toBe("'none'");
  for (const name of ['script-src', 'style-src', 'img-src', 'connect-src']) {
    expect(policy.get(name), name).toBe("'self'");
  }
  expect(policy.get('frame-ancestors')).toBe("'none'");
});

test('so does the answer to somebody who is not known', async () => {
  const response = await get('', '');
  expect(response.status).toBeGreaterThan(300);
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
});

test.each(pages)('/%s has nothing inline that the policy would refuse', async (path) => {
  const html = await (await get(path)).text();
  const tags = html.match(/<[a-z][^>]*>/gi) ?? [];
  expect(tags.length).toBeGreaterThan(10);
  expect(tags.filter((tag) => /\s(style|on[a-z]+)\s*=/i.test(tag.replaceAll(/"[^"]*"/g, '""')))).toEqual([]);
  expect(tags.filter((tag) => /^<script/i.test(tag) && !/\ssrc="/.test(tag))).toEqual([]);
  expect(tags.filter((tag) => /^<style/i.test(tag))).toEqual([]);
});
