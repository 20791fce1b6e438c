import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';

import { Prose, target } from '../src/Prose';

const drawn = (text: string) => renderToStaticMarkup(createElement(Prose, { text }));

test('only addresses in the web are followed', () => {
  expect(target('https://bank.example@evil.example/a')?.host).toBe('evil.example');
  expect(target('https://\u0430pple.com')?.host).toBe('xn--pple-43d.com');
  for (const none of ['javascript:alert(1)', 'JAVASCRIPT:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', 'blob:https://a.example/b', '/api/chat', '//evil.example', '#top', 'mailto:a@b.example', '', undefined]) {
    expect(target(none)).toBeUndefined();
  }
});

test('Markdown is drawn', () => {
  const html = drawn('# One\n\n**two** and `three`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\nls\n```');
  for (const element of ['<h3>One</h3>', '<strong>two</strong>', '<code>three</code>', '<td>1</td>', '<pre tabindex="0"><code class="language-sh">']) {
    expect(html).toContain(element);
  }
});

test('a link says where it leads, and an image is one', () => {
  expect(drawn('[your bank](https://evil.example/x "a title")')).toBe(
    '<div class="prose"><p><span class="link"><a href="https://evil.example/x" target="_blank" rel="noopener noreferrer nofollow">your bank</a> <bdi class="host">evil.example</bdi></span></p></div>',
  );
  expect(drawn('![a chart](https://evil.example/pixel.png)')).toContain('>Image: a chart</a> <bdi class="host">evil.example</bdi>');
  expect(drawn('[run](javascript:alert(1)) ![x](data:image/png;base64,AA)')).toBe('<div class="prose"><p>run Image: x</p></div>');
});

test('HTML is text, wherever it stands', () => {
  const hostile = ['<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '<b>x</b>', '<iframe src="https://evil.example"></iframe>', '<!-- x -->', '<svg/onload=alert(1)>'];
  for (const html of hostile) {
    for (const text of [html, `one ${html} two`, `> ${html}`, `- ${html}`, `| a |\n|---|\n| ${html} |`, `**${html}**`, `x[^1]\n\n[^1]: ${html}`]) {
      const made = drawn(text).match(/<(?!\/?(?:div|p|h3|h4|h5|h6|span|bdi|strong|em|code|pre|ul|ol|li|blockquote|table|thead|tbody|tr|th|td|a)[ >])[^>]*>/g);
      expect(made, text).toBeNull();
      expect(drawn(text)).not.toContain('<a href="#');
    }
  }
});

test('invisible characters are marked', () => {
  for (const text of ['a \u202e b', '`a \u202e b`', '[a \u202e b](https://a.example)', '```\na \u202e b\n```', '<b>\u202e</b>']) {
    expect(drawn(text)).toContain('<span class="hidden-char">U+202E</span>');
    expect(drawn(text)).not.toContain('\u202e');
  }
});
