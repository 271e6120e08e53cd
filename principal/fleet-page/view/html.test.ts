import { expect, test } from 'vitest';
import { abridged, escapeHtml, html } from './html.ts';

test('texts are escaped wherever they stand, HTML made here is not', () => {
  const text = `<b a="1" c='2'>&amp;\`</b>`;
  const escaped = '&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&#96;&lt;/b&gt;';
  expect(html`<p title="${text}">${text}${[html`<i>${text}</i>`, 3]}</p>${undefined}${false}`.text).toBe(
    `<p title="${escaped}">${escaped}<i>${escaped}</i>3</p>`,
  );
});

test('characters that steer are shown, not obeyed; joiners and other scripts stay', () => {
  expect(escapeHtml('a\u0000b\u001b[31m\u202ec\u2066d\u2028e\ufefff\u{e0041}g\ud800h')).toBe('a�b�[31m�c�d�e�f�g�h');
  for (const kept of ['ملف', '👩‍👩‍👧', 'ﷺ', 'नमस्ते', 'a\u0323\u0302']) {
    expect(escapeHtml(kept)).toBe(kept);
  }
});

test('marks are not piled up', () => {
  expect(escapeHtml(`a${'\u0301'.repeat(50)}b`)).toBe(`a${'\u0301'.repeat(4)}b`);
});

test('a cut does not leave half a character', () => {
  expect(abridged('a💥b', 3)).toBe('a�…');
  expect(abridged('abc', 3)).toBe('abc');
});
