// The fragment of the address: an ask to show, or the secret of an inbox, which leaves the address at once, so that no
// history, bookmark or picture of the window has it.

const take = (name) => {
  const { hash } = location;
  return hash.startsWith(`#${name}=`) ? decodeURIComponent(hash.slice(name.length + 2)) : null;
};

/** The secret in the address, once. */
export function secret() {
  try {
    const found = take("secret");
    if (found !== null) history.replaceState(null, "", location.pathname + location.search);
    return found;
  } catch {
    history.replaceState(null, "", location.pathname + location.search);
    return null;
  }
}

/** The id of the ask in the address. */
export function ask() {
  try {
    return take("ask");
  } catch {
    return null;
  }
}
