import { expect, test } from 'vitest';
import { kubeRate, receiveWindowLimits } from './index.ts';

const read = (environment: Record<string, string>) => {
  const warnings: string[] = [];
  return { rate: kubeRate(environment, (message) => warnings.push(message)), warnings };
};

test('there is no rate unless one is asked for; the other half is that of the original', () => {
  expect(read({}).rate).toBeUndefined();
  expect(read({ ARGOCD_AGENT_KUBE_QPS: '20' }).rate).toEqual({ perSecond: 20, burst: 300 });
  expect(read({ ARGOCD_AGENT_KUBE_BURST: '0x10' }).rate).toEqual({ perSecond: 100, burst: 16 });
  expect(read({ ARGOCD_AGENT_KUBE_QPS: '-1' }).rate).toBeUndefined();
});

test('what cannot be read is named', () => {
  const { rate, warnings } = read({ ARGOCD_AGENT_KUBE_QPS: 'fast' });
  expect(rate).toEqual({ perSecond: 100, burst: 300 });
  expect(warnings).toEqual([expect.stringContaining('ARGOCD_AGENT_KUBE_QPS = "fast"')]);
});

test('how much an agent may send ahead can be set', () => {
  const warnings: string[] = [];
  const limits = (size?: string) =>
    receiveWindowLimits(size === undefined ? {} : { ARGOCD_AGENT_RECV_QUEUE_SIZE: size }, (message) =>
      warnings.push(message),
    );
  expect([limits().maxEvents, limits('7').maxEvents]).toEqual([1_000, 7]);
  expect(warnings).toEqual([]);
  for (const bad of ['0', '-3', 'many']) {
    expect(limits(bad).maxEvents).toBe(1_000);
  }
  expect(warnings).toHaveLength(3);
});
