import { memo, type ReactNode } from 'react';
import Markdown, { type Components } from 'react-markdown';
import gfm from 'remark-gfm';

import { readable } from './readable';

/** What may become of a model's text; anything else is only what is written in it. */
const ELEMENTS = [
  'p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'strong', 'em', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'hr', 'br', 'span',
  'table', 'thead', 'tbody', 'tr', 'th', 'td', 'a', 'img',
];

/** Where an address leads: only to the web, and not to this page's own server. */
export function target(address: string | undefined): URL | undefined {
  try {
    // Without a base: a relative address is none.
    const url = new URL(address ?? '');
    return url.protocol === 'https:' || url.protocol === 'http:' ? url : undefined;
  } catch {
    return undefined;
  }
}

/** A link with the host it leads to, which its text may hide. Without an address that can be followed it is a text. */
function Link({ href, children }: { href?: string; children?: ReactNode }) {
  const url = target(href);
  if (!url) return <>{children}</>;
  return (
    <span className="link">
      <a href={url.href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>{' '}
      <bdi className="host">{url.host}</bdi>
    </span>
  );
}

const COMPONENTS: Components = {
  a: ({ href, children }) => <Link href={href}>{children}</Link>,
  // Nothing is loaded from elsewhere because a model says so: an address can carry away what the model has read.
  img: ({ src, alt }) => <Link href={typeof src === 'string' ? src : undefined}>Image: {alt || 'without a name'}</Link>,
  // The headings of the page are others.
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
  table: ({ children }) => (
    <div className="table" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
};

/** What the model says: Markdown, of which no HTML, no image and no script is made. */
export const Prose = memo(function Prose({ text }: { text: string }) {
  return (
    <div className="prose">
      <Markdown remarkPlugins={[gfm]} rehypePlugins={[readable]} allowedElements={ELEMENTS} unwrapDisallowed components={COMPONENTS}>
        {text}
      </Markdown>
    </div>
  );
});
