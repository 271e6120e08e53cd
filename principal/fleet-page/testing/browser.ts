import { type Browser, chromium } from 'playwright-core';
import { onPath } from '../../../e2e/tools/index.ts';

/**
 * Starts the machine's Chromium without a display.
 * @throws Error when there is none
 */
export async function startBrowser(): Promise<Browser> {
  const executablePath = onPath('chromium');
  if (executablePath === undefined) {
    throw new Error('there is no chromium on the PATH: install it (Debian: apt-get install chromium fonts-liberation)');
  }
  const quiet = ['no-first-run', 'disable-background-networking', 'disable-component-update', 'disable-sync'];
  const args = ['headless', 'no-sandbox', 'disable-gpu', 'disable-quic', ...quiet].map((name) => `--${name}`);
  return await chromium.launch({ executablePath, args });
}
