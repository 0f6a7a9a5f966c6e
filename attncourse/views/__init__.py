"""What is shown of whole models: heads as a map to click, one block as a picture, a button that fetches a model."""
