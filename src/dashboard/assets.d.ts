// Vite imports assets as their address.
declare module '*.svg' {
  const address: string
  // biome-ignore lint/style/noDefaultExport: Vite exports the address this way
  export default address
}
declare module '*.css'
