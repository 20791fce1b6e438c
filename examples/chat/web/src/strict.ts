// Imported before all else: zod, which the AI SDK uses, would try out `eval`, and the page's policy would report it.
import { config } from 'zod/v4/core';

config({ jitless: true });
