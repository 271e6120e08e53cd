import { writeFile } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import type { FleetModel } from '../model/fleet-model.ts';
import { startBrowser } from '../testing/browser.ts';
import { type MadeUpFleet, serveMadeUpFleet } from '../testing/made-up-fleet.ts';
import { sampleFleet } from '../testing/sample-fleets.ts';
import type { ListedApplications } from '../view/cluster-page.ts';

/** A picture that was taken. */
export interface TakenPicture {
  /** `500-table-dark-phone.png`. */
  readonly name: string;
  readonly bytes: number;
  /** What the browser complained about, and how much of the page is wider than the screen. */
  readonly troubles: readonly string[];
}

const schemes = ['light', 'dark'] as const;
/** In CSS pixels. */
const devices = {
  desktop: { width: 1440, height: 900 },
  phone: { width: 390, height: 844 },
} as const;
type Device = keyof typeof devices;

/** Applications of the cluster whose page is taken. */
const listed: ListedApplications = {
  shown: [
    {
      namespace: 'argocd',
      name: 'shop-checkout',
      project: 'shop',
      health: 'Degraded',
      sync: 'OutOfSync',
      message: 'Deployment checkout: 1 of 3 pods are ready',
    },
    {
      namespace: 'argocd',
      name: 'shop-search',
      project: 'shop',
      health: 'Progressing',
      sync: 'Synced',
      message: 'Waiting for rollout to finish: 2 of 3 updated replicas are available',
    },
  ],
  more: 1,
  withheld: 2,
};

const views = ['all', 'table', 'cluster'] as const;

/** What a picture shows. */
interface Motif {
  /** Clusters of the fleet. */
  readonly size: number;
  /** All clusters, the table of them, or the page of one that has a trouble. */
  readonly view: (typeof views)[number];
  readonly scheme: (typeof schemes)[number];
  readonly device: Device;
  /** Pixels at most: of a large fleet only the beginning is of interest. */
  readonly height: number;
}

/** Every view of fleets of these sizes, on every device, by the names of their pictures. */
export function allMotifs(sizes: readonly number[]): Map<string, Motif> {
  const motifs = new Map<string, Motif>();
  for (const size of sizes) {
    for (const scheme of schemes) {
      for (const device of Object.keys(devices) as Device[]) {
        for (const view of views) {
          motifs.set(`${size}-${view}-${scheme}-${device}.png`, { size, view, scheme, device, height: 2_400 });
        }
      }
    }
  }
  return motifs;
}

/** The pictures that stand in the documentation. */
export const documentedMotifs: ReadonlyMap<string, Motif> = new Map([
  ['fleet-page.webp', { size: 50, view: 'all', scheme: 'light', device: 'desktop', height: 900 }],
  ['fleet-page-large.webp', { size: 500, view: 'all', scheme: 'dark', device: 'desktop', height: 900 }],
  ['fleet-page-cluster.webp', { size: 50, view: 'cluster', scheme: 'light', device: 'phone', height: 844 }],
]);

/**
 * Takes pictures of made-up fleets, as PNG or WebP.
 * @param pathOf where a picture of this name goes
 * @throws Error without a browser
 */
export async function* takePictures(
  motifs: ReadonlyMap<string, Motif>,
  pathOf: (name: string) => string,
): AsyncGenerator<TakenPicture> {
  const browser = await startBrowser();
  try {
    for (const [name, motif] of motifs) {
      const clusters = sampleFleet(motif.size);
      const fleet = await serveMadeUpFleet(clusters, { applications: () => listed });
      try {
        giveHistory(fleet.model, motif.size);
        const [, unwell = ''] = Object.keys(clusters);
        const path = { all: '', table: '?view=table', cluster: `clusters/${unwell}` }[motif.view];
        const { picture, troubles } = await take(browser, fleet, path, motif, /webp$/.test(name) ? 'webp' : 'png');
        await writeFile(pathOf(name), picture);
        yield { name, bytes: picture.length, troubles };
      } finally {
        await fleet.close();
      }
    }
  } finally {
    await browser.close();
  }
}

/** An hour in which changes came in waves, until what is on the way now. */
function giveHistory(model: FleetModel, size: number): void {
  const hour = Array.from({ length: 240 }, (_, at) => Math.max(0, Math.sin(at / 17) + Math.sin(at / 5) / 3));
  for (const wave of hour) {
    model.lag.push(Math.round((wave * size) / 6));
    model.throughput.push(wave * size * 0.8 + size / 10);
  }
  for (const { facts, lag } of model.clusters().values()) {
    for (const wave of [...hour.map((value) => Math.round(value * 3)), facts.pending]) {
      lag.push(wave);
    }
  }
  model.lag.push([...model.clusters().values()].reduce((sum, { facts }) => sum + facts.pending, 0));
}

async function take(
  browser: Browser,
  fleet: MadeUpFleet,
  path: string,
  motif: Motif,
  format: 'png' | 'webp',
): Promise<{ picture: Buffer; troubles: string[] }> {
  const viewport = devices[motif.device];
  const context = await browser.newContext({
    viewport,
    colorScheme: motif.scheme,
    reducedMotion: 'reduce',
    extraHTTPHeaders: { authorization: `Bearer ${await fleet.session()}` },
  });
  const troubles: string[] = [];
  try {
    const page = await context.newPage();
    page.on('console', (message) => message.type() === 'error' && troubles.push(message.text()));
    page.on('pageerror', (error) => troubles.push(error.message));
    await page.goto(fleet.url + path);
    await page.locator('#live[data-live="on"]').waitFor({ state: 'attached' });
    const measure = (of: string) => page.evaluate<number>(`document.documentElement.${of}`);
    const wider = (await measure('scrollWidth')) - (await measure('clientWidth'));
    if (wider > 0) {
      troubles.push(`${wider} px are wider than the screen`);
    }
    const height = Math.min(await measure('scrollHeight'), motif.height);
    // playwright-core takes no WebP itself.
    const session = await context.newCDPSession(page);
    const { data } = await session.send('Page.captureScreenshot', {
      format,
      captureBeyondViewport: true,
      clip: { x: 0, y: 0, width: viewport.width, height, scale: 1 },
      ...(format === 'webp' ? { quality: 80 } : {}),
    });
    return { picture: Buffer.from(data, 'base64'), troubles };
  } finally {
    await context.close();
  }
}
