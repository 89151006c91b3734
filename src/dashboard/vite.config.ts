import { defineConfig } from 'vite'

// biome-ignore lint/style/noDefaultExport: it is how Vite reads it
export default defineConfig({
  base: '/dashboard/',
  build: {
    outDir: '../../dist/dashboard',
    emptyOutDir: true,
    target: 'es2023',
    // What is small goes into a file of its own all the same: the page may load nothing from `data:`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
})
