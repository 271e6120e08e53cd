import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import type { FleetPageOptions } from './fleet-page.ts';
import { serveArgoUi } from './testing/argo-ui.ts';
import { startBrowser } from './testing/browser.ts';
import { hostileTexts, type MadeUpCluster, madeUpExtensionKeys, serveMadeUpFleet } from './testing/made-up-fleet.ts';
import { hostileFleet, sampleFleet } from './testing/sample-fleets.ts';

// The extension of Argo CD's UI in a real Chromium, with real React. The test plays Argo CD's server and UI.

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const shop = { namespace: 'argocd', name: 'shop', project: 'default' };
const keys = { fleet: madeUpExtensionKeys.application, 'fleet-clusters': madeUpExtensionKeys.clusters };
const station = (name: string, isDone: boolean, text = name) => ({
  station: name,
  isDone,
  at: '2026-06-01T12:00:00Z',
  text,
});

describe('in Chromium', { tags: 'chromium' }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  async function open(clusters: Record<string, MadeUpCluster>, way?: FleetPageOptions['way']) {
    const fleet = await serveMadeUpFleet(clusters, { path: '/fleet/', ...(way === undefined ? {} : { way }) });
    const ui = await serveArgoUi({ fleet: fleet.url, keys, application: shop });
    const context = await browser.newContext();
    onTestFinished(async () => {
      await context.close();
      await ui.close();
      await fleet.close();
    });
    const page = await context.newPage();
    const troubles: string[] = [];
    page.on('pageerror', (error) => troubles.push(error.message));
    page.on('dialog', (dialog) => troubles.push(`dialog ${dialog.message()}`));
    await page.goto(ui.url);
    await shows(page, 'Argo CD');
    return { fleet, ui, page, troubles };
  }
  const render = (page: Page, kind: 'system' | 'resource' | 'status', props: object = {}) =>
    page.evaluate(
      ([name, given]) => (globalThis as unknown as { render(...all: unknown[]): void }).render(name, given),
      [kind, props] as const,
    );
  const rows = (page: Page) => page.locator('tbody tr').allInnerTexts();
  const shows = (page: Page, text: string | RegExp) =>
    until(
      `the page to show ${text}`,
      async () => (await page.locator('#app').allInnerTexts()).join('').search(text) >= 0,
      {
        details: () => page.url(),
      },
    );
  const application = (version: number) => ({
    metadata: { namespace: 'argocd', name: 'shop', resourceVersion: String(version) },
    spec: { project: 'default' },
  });

  test('it registers with Argo CD what its UI offers', async () => {
    const { page } = await open({ one: {} });
    const registered = await page.evaluate(() =>
      Object.entries((globalThis as unknown as { registered: Record<string, unknown[]> }).registered).map(
        ([kind, [component, ...rest]]) => [
          kind,
          typeof component,
          ...rest.map((each) => (typeof each === 'function' ? 'f' : each)),
        ],
      ),
    );
    expect(registered).toEqual([
      ['resource', 'function', 'argoproj.io', 'Application', 'Fleet', { icon: 'fa-route' }],
      ['status', 'function', 'Change', 'fleet_change', 'f'],
      // The UI is there later than the extension.
      ['system', 'function', 'Fleet', '/fleet', 'fa-project-diagram'],
    ]);
  });

  test('the fleet, the worst first, and changes without loading it again', async () => {
    const { fleet, ui, page, troubles } = await open({ ...sampleFleet(250), zeta: {} });
    await render(page, 'system');
    await until('all clusters', async () => (await rows(page)).length === 251);
    expect((await rows(page))[0]).toMatch(/Lost|Refused/);
    fleet.set('zeta', { connectedSince: undefined, lastSeen: new Date() });
    await until('the change', async () => (await rows(page)).some((row) => /^zeta\s+Lost/.test(row)));
    fleet.set('zeta', undefined);
    await until('it to go', async () => (await rows(page)).every((row) => !/^zeta/.test(row)));
    fleet.set('zeta', {});
    ui.cut();
    await until('it to come back', async () => (await rows(page)).some((row) => /^zeta\s+Ready/.test(row)));
    expect(troubles).toEqual([]);
  });

  test('hostile names and texts are text; no violation of accessibility', async () => {
    const way = async () => ({
      agent: 'hostile-0',
      stations: hostileTexts.map((text, index) => station(`s${index}`, false, text)),
    });
    const { page, troubles } = await open(hostileFleet(10), way);
    for (const [kind, props] of [
      ['system', {}],
      ['resource', { application: application(1) }],
    ] as const) {
      await render(page, kind, props);
      await shows(page, /<script>/);
      expect(await page.title()).toBe('Argo CD');
      expect(await page.locator('#app script, #app img').count()).toBe(0);
      await page.evaluate(axe);
      const violations = await page.evaluate(async () => {
        const { axe: tool } = globalThis as unknown as {
          axe: { run(root: string): Promise<{ violations: { id: string }[] }> };
        };
        return (await tool.run('#app')).violations.map(({ id }) => id);
      });
      expect(violations).toEqual([]);
    }
    expect(troubles).toEqual([]);
  });

  test('where the change of an Application is, asked anew for each version of it', async () => {
    let stations = [station('hub', true), station('agent', true), station('synced', false, 'OutOfSync')];
    const asked: object[] = [];
    const { page } = await open({ east: {} }, async (which) => {
      asked.push(which);
      return { agent: 'east', stations };
    });
    await render(page, 'resource', { application: application(1) });
    await shows(page, /The last change waits at synced\./);
    expect(
      (await rows(page)).map((row) =>
        row
          .split('\t')
          .map((part) => part.trim())
          .filter((_, index) => index !== 2),
      ),
    ).toEqual([
      ['✓', 'hub', 'hub'],
      ['✓', 'agent', 'agent'],
      ['…', 'synced', 'OutOfSync'],
    ]);
    await shows(page, /Cluster east: Ready/);
    stations = stations.map((each) => ({ ...each, isDone: true }));
    await render(page, 'resource', { application: application(2) });
    await shows(page, /The last change has arrived\./);
    expect(asked).toEqual([shop, shop]);
    await render(page, 'status', { application: application(2) });
    await shows(page, /^LAST CHANGE\s+Arrived$/);
  });

  test('who may not invoke the extension, or get an Application, sees why', async () => {
    const { ui, page } = await open({ east: {} }, async () => undefined);
    await render(page, 'resource', { application: application(1) });
    await shows(page, /404: there is no such Application on the hub/);
    ui.rights = { extensions: ['fleet'], applications: true };
    await render(page, 'system');
    await shows(
      page,
      /401: Unauthorized extension request\. You need a role with the right: extensions, invoke, fleet-clusters/,
    );
    ui.rights = { extensions: [], applications: false };
    await shows(page, /only to those who may get at least one Application/);
    ui.rights = { extensions: ['fleet', 'fleet-clusters'], applications: true };
    await shows(page, /1 of 1 clusters are ready/);
  });
});
