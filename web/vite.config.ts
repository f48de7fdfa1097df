import { defineConfig } from "vite";

// The server of a development run; `npm run dev` passes the API on to it.
const api = process.env.FUSIONSCOPE_API ?? "http://127.0.0.1:8000";

export default defineConfig({
  build: {
    outDir: "../server/static",
    emptyOutDir: true,
    // Everything is a file of its own: a data: URL would need a wider content security policy.
    assetsInlineLimit: 0,
    target: "es2022",
    chunkSizeWarningLimit: 1600,
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  worker: { format: "es" },
  server: { host: "127.0.0.1", proxy: { "/api": api } },
});
