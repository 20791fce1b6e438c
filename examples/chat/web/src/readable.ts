// What is left to do for a model's text once it is a tree: HTML becomes the text it is written as, and characters that cannot be
// seen become marks.
import type { Element, ElementContent, Root, RootContent, Text } from 'hast';

import { pieces } from './escape';

function element(tagName: string, children: ElementContent[], className?: string): Element {
  return { type: 'element', tagName, properties: className ? { className: [className] } : {}, children };
}

function marked(text: Text): ElementContent[] {
  return pieces(text.value, 'prose').map(piece => {
    const value: Text = { type: 'text', value: piece.text };
    return piece.hidden ? element('span', [value], 'hidden-char') : value;
  });
}

function within(children: readonly RootContent[]): ElementContent[] {
  return children.flatMap((child): ElementContent[] => {
    switch (child.type) {
      case 'element':
        // A title would be shown by the browser, as it is.
        delete child.properties.title;
        child.children = within(child.children);
        return [child];
      case 'text':
        return marked(child);
      case 'raw':
        return marked({ type: 'text', value: child.value });
      default:
        return [];
    }
  });
}

/** A plugin for what Markdown has become. */
export function readable() {
  return (tree: Root) => {
    tree.children = tree.children.flatMap(child => {
      const read = within([child]);
      return child.type === 'raw' ? [element('p', read)] : read;
    });
  };
}
