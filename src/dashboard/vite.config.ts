import { defineConfig } from 'vite'

// biome-ignore lint/style/noDefaultExport: Vite reads the default export
export default defineConfig({
  base: '/dashboard/',
  build: {
    outDir: '../../dist/dashboard',
    emptyOutDir: true,
    target: 'es2023',
    // Small assets become files, too: the page's policy forbids `data:` URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The licences of the bundled packages ask that their texts are passed on.
    license: { fileName: 'LICENSES.md' },
  },
})
