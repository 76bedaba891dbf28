import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import "./look/look.css";

// After an update of the server, parts of the old console are gone: the page is loaded anew, once.
const RELOADED = "yard.reloaded";
window.addEventListener("vite:preloadError", (event) => {
  const last = Number(sessionStorage.getItem(RELOADED) ?? 0);
  if (Date.now() - last < 10_000) return;
  event.preventDefault();
  sessionStorage.setItem(RELOADED, String(Date.now()));
  location.reload();
});

const root = document.getElementById("root");
if (!root) throw new Error("the page has no root");
createRoot(root).render(<StrictMode><App /></StrictMode>);
