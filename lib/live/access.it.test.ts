import { expect, test } from 'vitest';
import { compareWithArgoCD, comparisonMs } from '../../e2e/oracle/index.ts';
import { instanceOf, trackingOf } from './index.ts';

test(
  'the Application that an object is marked with is the one that Argo CD reads',
  async () => {
    const differs = await compareWithArgoCD('tracking', (dice) => {
      const pieces = ['web', 'team_web', ':', '/', 'apps', 'Deployment', 'a', ''];
      const random = () => Array.from({ length: dice.integer(0, 9) }, () => dice.pick(pieces)).join('');
      const id = dice.chance(0.5) ? random() : dice.pick(['web:apps/Deployment:a/web', 'web:/Role:a/system:web']);
      const annotations = {
        ...(dice.chance(0.9) ? { 'argocd.argoproj.io/tracking-id': id } : {}),
        ...(dice.chance(0.4) ? { 'argocd.argoproj.io/installation-id': dice.pick(['', 'one', 'two']) } : {}),
      };
      const labels = dice.chance(0.5) ? { app: dice.pick(['web', '']) } : {};
      const method = dice.pick(['annotation', 'annotation+label', 'label']);
      const installationID = dice.pick(['', '', 'one']);
      const object = { metadata: { annotations, labels } };
      const tracking = trackingOf({
        'application.resourceTrackingMethod': method,
        'application.instanceLabelKey': 'app',
        installationID,
      });
      return { of: { object, labelKey: 'app', method, installationID }, ours: instanceOf(object, tracking) ?? '' };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);
