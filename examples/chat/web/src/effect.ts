import { useEffect as reactEffect, useLayoutEffect as reactLayoutEffect, type DependencyList } from 'react';

/** What an effect may return: nothing, or its clean-up. */
type Effect = () => undefined | (() => void);

// React calls whatever an effect returns as its clean-up, and its own type does not refuse a value: `scrollIntoView`
// returns a promise in newer Chromium, and `useEffect(() => element.scrollIntoView())` then took the page down. With
// this type the compiler refuses such an effect.

/** React's `useEffect`, for effects that return nothing or a clean-up. */
export const useEffect: (effect: Effect, deps?: DependencyList) => void = reactEffect;

/** React's `useLayoutEffect`, for effects that return nothing or a clean-up. */
export const useLayoutEffect: (effect: Effect, deps?: DependencyList) => void = reactLayoutEffect;
