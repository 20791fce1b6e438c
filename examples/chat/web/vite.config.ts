import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// The page runs under a strict Content-Security-Policy: nothing inline, nothing from elsewhere.
export default defineConfig({
  plugins: [react()],
  build: { assetsInlineLimit: 0, modulePreload: { polyfill: false }, target: 'es2022', chunkSizeWarningLimit: 700 },
  // The two scripts that all pages share are beside the inbox.
  server: { proxy: { '/api': 'http://127.0.0.1:8080' }, fs: { allow: ['..', '../../../crates/inbox/src/page'] } },
});
